"""SQLite: the engine of the device."""
