-- Tokens and sessions.

-- name: insert_token
insert into rota_token (id, name, digest, role, scope_kind, scope_id, created_at, created_by, expires_at)
values (:id, :name, :digest, :role, :scope_kind, :scope_id, :now, :actor, :now + cast(:life as bigint));

-- name: active_token_named
select id from rota_token where name = :name and revoked_at is null;

-- name: tokens
-- The columns of `_Columns` in store/access/tokens.py, in their order; as below.
select id, name, role, scope_kind, scope_id, created_at, created_by, expires_at, revoked_at, revoked_by, used_at
from rota_token order by created_at, id;

-- name: token_of
select id, name, role, scope_kind, scope_id, created_at, created_by, expires_at, revoked_at, revoked_by, used_at,
    digest, case when revoked_at is not null or expires_at <= :now then 0 else 1 end,
    case when used_at is null or used_at < :now - :stale then 1 else 0 end
from rota_token where id = :id;

-- name: token_of_session
select t.id, t.name, t.role, t.scope_kind, t.scope_id, t.created_at, t.created_by, t.expires_at, t.revoked_at,
    t.revoked_by, t.used_at, t.digest,
    case when t.revoked_at is not null or t.expires_at <= :now or s.expires_at <= :now then 0 else 1 end,
    case when t.used_at is null or t.used_at < :now - :stale then 1 else 0 end
from rota_session s join rota_token t on t.id = s.token_id
where s.digest = :digest;

-- name: token_used
update rota_token set used_at = :now where id = :id;

-- name: revoke_token
-- Returns a row to the first caller only: a repetition changes, and notes, nothing.
update rota_token set revoked_at = :now, revoked_by = :actor where id = :id and revoked_at is null returning name;

-- name: insert_session
insert into rota_session (digest, token_id, created_at, expires_at) values (:digest, :id, :now, :now + :life);

-- name: sessions_of
select digest from rota_session where token_id = :id limit :most;

-- name: drop_session
delete from rota_session where digest = :digest
returning (select t.name from rota_token t where t.id = token_id);

-- name: drop_sessions_of
delete from rota_session where token_id = :id;

-- name: drop_old_sessions
delete from rota_session where expires_at < :now;
