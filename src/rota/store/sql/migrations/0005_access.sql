-- Who may use the server: tokens, of which only a digest is kept, and the sessions that browsers make with them.
create table rota_token (
    id text primary key,
    name text not null,
    digest text not null,           -- of the secret
    role text not null check (role in ('viewer', 'operator', 'admin', 'worker', 'enqueue')),
    scope_kind text,                -- both: only for runs of this scope
    scope_id text,
    created_at bigint not null,
    created_by text,
    expires_at bigint,
    revoked_at bigint,
    revoked_by text,
    used_at bigint                  -- about when it was last used
) {keyed};
create unique index rota_token_name on rota_token (name) where revoked_at is null;

create table rota_session (
    digest text primary key,        -- of what the cookie holds
    token_id text not null,
    created_at bigint not null,
    expires_at bigint not null
) {keyed};
create index rota_session_token on rota_session (token_id);
