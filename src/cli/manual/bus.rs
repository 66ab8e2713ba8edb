//! What the interfaces of the orchestrator say about themselves (introspection, D-Bus specification).

/// A method or signal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Whether it is a signal.
    pub is_signal: bool,
    /// Name on the bus.
    pub name: String,
    /// Direction, type and name of each argument.
    pub arguments: Vec<String>,
    /// Plain text of the doc comment of the implementation; empty if there is none.
    pub text: String,
}

impl Member {
    /// Returns the member in the notation of the manual, such as `Cancel(in s id);`.
    pub fn notation(&self) -> String {
        format!("{}({});", self.name, self.arguments.join(", "))
    }
}

/// Returns the members of an interface, methods first.
pub fn members(interface: &str, description: &str) -> Vec<Member> {
    let head = format!("<interface name=\"{interface}\">");
    let of_it = description.split_once(&head).map(|(_, rest)| rest);
    let of_it = of_it.and_then(|rest| rest.split_once("</interface>"));
    let mut found = Vec::new();
    let mut comment = None;
    let mut text = String::new();
    let mut member = Member::default();
    for line in of_it.map_or("", |(inner, _)| inner).lines().map(str::trim) {
        if let Some(lines) = &mut comment {
            if line == "-->" {
                text = std::mem::take(lines);
                comment = None;
            } else {
                *lines = format!("{lines}{line}\n");
            }
        } else if line == "<!--" {
            comment = Some(String::new());
        } else if line.starts_with("<method ") || line.starts_with("<signal ") {
            member = Member {
                is_signal: line.starts_with("<signal "),
                name: attribute(line, "name").unwrap_or_default().to_owned(),
                arguments: Vec::new(),
                text: std::mem::take(&mut text),
            };
        } else if line.starts_with("<arg ") {
            let words = ["direction", "type", "name"].map(|name| attribute(line, name));
            let words: Vec<_> = words.into_iter().flatten().collect();
            member.arguments.push(words.join(" "));
        }
        let is_end = line.starts_with("</method") || line.starts_with("</signal");
        if is_end || (line.ends_with("/>") && !line.starts_with("<arg ")) {
            found.push(std::mem::take(&mut member));
        }
    }
    found.sort_by_key(|member| member.is_signal);
    found
}

/// The value of an attribute in a line of XML.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_arguments_and_text() {
        let description = "\
<interface name=\"org.example.Other\">
  <method name=\"No\"/>
</interface>
<interface name=\"org.example.One\">
  <signal name=\"Gone\"/>
  <!--
   Adds a page.

   More.
   -->
  <method name=\"Add\">
    <arg name=\"url\" type=\"s\" direction=\"in\"/>
    <arg type=\"u\" direction=\"out\"/>
  </method>
</interface>
";
        let add = Member {
            is_signal: false,
            name: "Add".to_owned(),
            arguments: vec!["in s url".to_owned(), "out u".to_owned()],
            text: "Adds a page.\n\nMore.\n".to_owned(),
        };
        let gone = Member { is_signal: true, name: "Gone".to_owned(), ..Member::default() };
        assert_eq!(add.notation(), "Add(in s url, out u);");
        assert_eq!(members("org.example.One", description), [add, gone]);
    }
}
