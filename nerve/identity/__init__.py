"""Who is asking, and who may: bootstrap, the claim, accounts, passwords, tokens and admission."""
