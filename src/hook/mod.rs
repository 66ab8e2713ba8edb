//! The programs behind the built-in plugins.
