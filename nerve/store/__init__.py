"""The store: connections, migrations, transactions and all the SQL there is."""
