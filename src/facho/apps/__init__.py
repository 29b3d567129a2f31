"""Everything a person clicks: plain Django, one skeleton an app (models, admin, api, urls)."""
