"""How measured cells look: tables, charts, maps and sentences for readers."""
