"""The contract as code.  Generated from spec/ by `make contract`: do not edit."""

