"""Formats of numbers and dates by region, for Django: see `FORMAT_MODULE_PATH`.

A page uses one of four: en-US, en-GB, es-419 (Latin America) and es-ES. `middleware.Region` chooses it, and scripts
format with the same one, which is the `lang` of the page. Times have 24 hours everywhere, as logs have.
"""
