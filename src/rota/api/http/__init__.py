"""HTTP below the routes: connections, headers, proxies, the guard, problems."""
