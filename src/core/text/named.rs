/// Defines an enum whose values have names: those in the database, in settings, in documents and in
/// output. A name is written once, next to its value.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* pub enum $type:ident {
        $($(#[$value_meta:meta])* $value:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$value_meta])* $value,)+
        }

        impl $type {
            /// Every value.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$value),+];

            /// Returns the name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($type::$value => $name,)+
                }
            }

            /// Returns the value of this name, or `None` if the name is unknown.
            pub fn parse(name: &str) -> Option<$type> {
                $type::ALL.into_iter().find(|value| value.as_str() == name)
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub use named;
