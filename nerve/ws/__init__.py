"""The WebSocket: what one client may say next, and the tasks that carry it out."""
