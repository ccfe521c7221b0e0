"""The contract itself, as it was generated from spec/."""

from functools import cache
from importlib.resources import files

from nerve.contract.caller import Caller
from nerve.contract.generated.meta import META_ASYNCAPI, META_DOCS, META_OPENAPI
from nerve.contract.route import Document, NoBody, NoParams
from nerve.routes.binding import bind
from nerve.services import Services

JSON, HTML = "application/json", "text/html; charset=utf-8"


@cache
def _document(name: str, media_type: str) -> Document:
    return Document(files("nerve.contract").joinpath("documents", name).read_bytes(), media_type)


async def get_openapi(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Document:
    return _document("openapi.json", JSON)


async def get_asyncapi(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Document:
    return _document("asyncapi.json", JSON)


async def get_docs(services: Services, caller: Caller, params: NoParams, body: NoBody) -> Document:
    return _document("docs.html", HTML)


ENDPOINTS = (bind(META_OPENAPI, get_openapi), bind(META_ASYNCAPI, get_asyncapi), bind(META_DOCS, get_docs))
