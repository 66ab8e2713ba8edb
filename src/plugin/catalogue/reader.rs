//! Reads JSON key by key, so that errors name the key.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// An error in a `config.json` with its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {key}: {what}", file.display())]
pub struct SchemaError {
    /// Path of the `config.json`.
    pub file: PathBuf,
    /// Path of the key, such as `properties.WGET_TIMEOUT.type`; `.` for the whole file.
    pub key: String,
    pub what: String,
}

/// A JSON value with the path of its key for errors.
pub struct Reader<'a> {
    file: &'a Path,
    key: String,
    pub value: Value,
}

impl<'a> Reader<'a> {
    /// Parses a file; an error unless it is a JSON object.
    pub fn new(file: &'a Path, text: &str) -> Result<Self, SchemaError> {
        let reader = |value| Reader { file, key: ".".to_owned(), value };
        let value: Value = serde_json::from_str(text)
            .map_err(|error| reader(Value::Null).error(&error.to_string()))?;
        if !value.is_object() {
            return Err(reader(value).error("is not a JSON object"));
        }
        Ok(reader(value))
    }

    /// Returns an error about the value.
    pub fn error(&self, what: &str) -> SchemaError {
        SchemaError { file: self.file.to_owned(), key: self.key.clone(), what: what.to_owned() }
    }

    /// Returns a reader of a value below this one, whose errors name both keys.
    pub fn under(&self, key: &str, value: Value) -> Reader<'a> {
        let key = match self.key.as_str() {
            "." => key.to_owned(),
            parent => format!("{parent}.{key}"),
        };
        Reader { file: self.file, key, value }
    }

    /// Returns a reader without a value, for errors about a missing key.
    pub fn at(&self, key: &str) -> Reader<'a> {
        self.under(key, Value::Null)
    }

    /// Value of a key. An explicit null counts as missing.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    /// Returns the value of a key; `None` if it is missing or null, an error if `read` refuses it.
    pub fn typed<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>, SchemaError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match read(value) {
            Some(found) => Ok(Some(found)),
            None => Err(self.at(key).error(&format!("is not {wanted}"))),
        }
    }

    /// Returns the text of a key, if it has one.
    pub fn text(&self, key: &str) -> Result<Option<String>, SchemaError> {
        self.typed(key, "a string", |v| v.as_str().map(str::to_owned))
    }

    /// Returns the number of a key, if it has one.
    pub fn number(&self, key: &str) -> Result<Option<f64>, SchemaError> {
        self.typed(key, "a number", Value::as_f64)
    }

    /// Returns the boolean of a key; false if it is missing.
    pub fn flag(&self, key: &str) -> Result<bool, SchemaError> {
        Ok(self.typed(key, "true or false", Value::as_bool)?.unwrap_or(false))
    }

    /// Returns the texts of a key; none if it is missing.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, SchemaError> {
        let read = |value: &Value| {
            let words = value.as_array()?.iter();
            words.map(|word| word.as_str().map(str::to_owned)).collect()
        };
        Ok(self.typed(key, "a list of strings", read)?.unwrap_or_default())
    }

    /// Returns the elements of a list; none if it is missing.
    pub fn list(&self, key: &str) -> Result<Vec<Reader<'a>>, SchemaError> {
        let values = self.typed(key, "a list", |v| v.as_array().cloned())?;
        let entries = values.unwrap_or_default().into_iter().enumerate();
        Ok(entries.map(|(at, value)| self.under(&format!("{key}[{at}]"), value)).collect())
    }

    /// Returns the entries of an object; none if it is missing.
    pub fn map(&self, key: &str) -> Result<Vec<(String, Reader<'a>)>, SchemaError> {
        let values = self.typed(key, "an object", |v| v.as_object().cloned())?;
        let parent = self.at(key);
        let entries = values.unwrap_or_default().into_iter();
        entries
            .map(|(name, value)| {
                let entry = parent.under(&name, value);
                if entry.value.is_object() {
                    Ok((name, entry))
                } else {
                    Err(entry.error("is not an object"))
                }
            })
            .collect()
    }
}
