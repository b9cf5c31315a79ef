"""What people look at: sessions, metrics, reviews and reports, made from memories."""
