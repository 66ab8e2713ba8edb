//! Plugins: names, discovery, configuration, environment, records.
