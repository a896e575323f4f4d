-- Sessions, each with a lease: who writes to it, until when, and the fencing number that its writer has to show.
create table attache_session (
    id text collate "C" primary key,
    owner text not null,
    cwd text not null,
    directories text[] not null,
    -- As RFC 3339 has it, as the entry `opened` says.
    created text not null,
    title text,
    first_prompt text,
    prompts bigint not null,
    -- How many records it has, which is the number of the next one.
    count bigint not null,
    bytes bigint not null,
    -- When something was last added, in milliseconds since 1970, by the clock of the database.
    updated bigint not null,
    -- Counts writers up. A writer with an older number can write nothing.
    fence bigint not null,
    -- The attempt that took the lease, so that one whose answer was lost knows its own.
    writer text,
    -- Where clients reach the server that has the session.
    lease_holder text,
    lease_until timestamptz
);

create index attache_session_list on attache_session (owner, updated desc, id desc);

-- What is in a session. Records are added and never changed.
create table attache_record (
    session text collate "C" not null references attache_session on delete cascade,
    number bigint not null,
    time bigint not null,
    -- The fencing number of its writer.
    fence bigint not null,
    -- JSON to the letter, which `jsonb` would not keep.
    entry text not null,
    primary key (session, number)
);

create function attache_milliseconds() returns bigint language sql volatile as
    'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint';

-- Tells whoever listens that a list of sessions has changed.
create function attache_tell_change() returns trigger language plpgsql as $$
begin
    perform pg_notify('attache_changed', coalesce(new.id, old.id));
    return null;
end
$$;

create trigger attache_session_comes_and_goes after insert or delete on attache_session
    for each row execute function attache_tell_change();

create trigger attache_session_is_named after update on attache_session
    for each row when (
        old.title is distinct from new.title
        or (new.title is null and old.first_prompt is distinct from new.first_prompt)
    )
    execute function attache_tell_change();
