"""The documents about the contract, as ``make contract`` wrote them."""

from importlib import resources

from nerve.contract.caller import Caller
from nerve.contract.generated.meta import META_ASYNCAPI, META_DOCS, META_OPENAPI
from nerve.contract.route import Document, NoBody, NoParams
from nerve.routes.binding import bind
from nerve.services import Services

_JSON, _HTML = "application/json", "text/html; charset=utf-8"


async def openapi(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Document:
    return _document("openapi.json", _JSON)


async def asyncapi(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Document:
    return _document("asyncapi.json", _JSON)


async def docs(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Document:
    return _document("docs.html", _HTML)


def _document(name: str, media_type: str) -> Document:
    # A small local file that nobody asks for often is read where it is wanted, not at every start.
    return Document(resources.files("nerve.contract").joinpath("documents", name).read_bytes(), media_type)


ENDPOINTS = (bind(META_OPENAPI, openapi), bind(META_ASYNCAPI, asyncapi), bind(META_DOCS, docs))
