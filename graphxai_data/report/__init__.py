"""What people read: data cards, tables and figures."""
