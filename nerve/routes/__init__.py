"""REST handlers, one module a chapter of the contract; ``ENDPOINTS`` is the table that lists them all."""

from nerve.routes import accounts, actors, auth, chat, health, meta, queue, sessions, setup

ENDPOINTS = (
    *health.ENDPOINTS,
    *auth.ENDPOINTS,
    *setup.ENDPOINTS,
    *accounts.ENDPOINTS,
    *actors.ENDPOINTS,
    *sessions.ENDPOINTS,
    *chat.ENDPOINTS,
    *queue.ENDPOINTS,
    *meta.ENDPOINTS,
)
