"""The contract generator: reads spec/, writes nerve/contract/generated/ and nerve/contract/documents/."""
