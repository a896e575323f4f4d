//! The tables, made and changed by numbered steps.

use attache_agent::store::StoreError;
use tokio::time::{sleep, timeout};

use crate::database::{Database, Failure};

/// The steps, in order. One that was released is never changed; another one is added.
const STEPS: &[&str] = &[include_str!("../migrations/0001_sessions.sql")];

/// Whoever holds this lock of the database migrates. A number that nobody else has.
const LOCK: i64 = 0x0061_7474_6163_6865;

/// Makes the tables as this version needs them, once, however many servers start at the same time.
pub(crate) async fn migrate(database: &Database) -> Result<(), StoreError> {
    let start = std::time::Instant::now();
    loop {
        match try_migrate(database).await {
            Ok(()) => return Ok(()),
            Err(Failure::Refused(error)) => return Err(error),
            Err(Failure::Away(problem)) if start.elapsed() >= database.settings.patience => {
                return Err(StoreError::Unavailable { problem });
            }
            Err(Failure::Away(_)) => sleep(std::time::Duration::from_millis(200)).await,
        }
    }
}

async fn try_migrate(database: &Database) -> Result<(), Failure> {
    let (mut client, driver) = database.connect().await?;
    let work = async {
        let transaction = client.transaction().await?;
        // Another one may be at it, and take longer than a statement usually does.
        transaction
            .batch_execute(&format!("set local statement_timeout = 0; select pg_advisory_xact_lock({LOCK})"))
            .await?;
        transaction
            .batch_execute(
                "create table if not exists attache_migration \
                 (version int primary key, applied timestamptz not null default now())",
            )
            .await?;
        let row = transaction.query_one("select coalesce(max(version), 0) from attache_migration", &[]).await?;
        let version: i32 = row.get(0);
        let Some(missing) = STEPS.get(version as usize..) else { return Ok(Some(version)) };
        for (number, step) in missing.iter().enumerate() {
            transaction.batch_execute(step).await?;
            let number = version + 1 + number as i32;
            transaction.execute("insert into attache_migration (version) values ($1)", &[&number]).await?;
        }
        transaction.commit().await?;
        Ok(None)
    };
    let driven = async {
        let _ = driver.await;
        std::future::pending().await
    };
    // Minutes are for those who wait for another one that migrates large tables.
    let limit = std::time::Duration::from_secs(300);
    let newer = tokio::select! {
        done = timeout(limit, work) => done.map_err(|_| Failure::Away("the database does not answer".into()))?,
        () = driven => return Err(Failure::Away("the connection to the database was cut".into())),
    };
    match newer.map_err(crate::database::failure)? {
        None => Ok(()),
        Some(version) => {
            let problem = format!("its tables are of version {version}, and this program knows {}", STEPS.len());
            Err(Failure::Refused(StoreError::Database { problem }))
        }
    }
}
