"""The supervisor and what lives in its nursery: sessions, turns, stops, the event log and its subscribers."""
