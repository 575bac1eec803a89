"""The pages: each looks at the store, and its template shows what was found."""
