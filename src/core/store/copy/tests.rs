use super::*;
use proptest::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);

fn retries(now: i64) -> Retries {
    Retries {
        backoff: Backoff { first: MINUTE, longest: 60 * MINUTE, attempts: 3 },
        now: Time(now),
        jitter: 1.0,
    }
}

fn object(name: &str) -> StoredObject {
    StoredObject { store: "/srv/store".into(), name: name.into(), sha256: "ab".into(), size: 7 }
}

fn stored(name: &str) -> End {
    End::Recorded(Record { object: Some(object(name)), ..Record::default() })
}

fn done() -> End {
    End::Recorded(Record::default())
}

fn error(differs: bool) -> End {
    End::Recorded(Record { error: Some("no space".into()), differs, ..Record::default() })
}

/// A copy that was stored and verified at 1000.
fn verified() -> Copy {
    let sealed = Copy::default().sealed(Time(0));
    sealed.begun(Task::Put).ended(&stored("a"), &retries(1000))
}

#[test]
fn sealed_page_is_copied_then_rests() {
    let copy = Copy::default().sealed(Time(5));
    assert_eq!((copy.status, copy.task), (CopyStatus::Waiting, Task::Put));
    assert_eq!(copy.due_at, Some(Time(5)));
    let copy = verified();
    assert_eq!(copy.status, CopyStatus::Idle);
    assert_eq!(copy.object, Some(object("a")));
    assert_eq!(copy.verified_at, Some(Time(1000)));
    assert!(copy.is_local && copy.is_usable());
}

#[test]
fn failed_copy_is_retried_without_end_and_stays_local() {
    let mut copy = Copy::default().sealed(Time(0));
    for attempt in 1..=40 {
        copy = copy.begun(Task::Put).ended(&error(false), &retries(0));
        assert_eq!((copy.status, copy.task), (CopyStatus::Waiting, Task::Put));
        assert_eq!((copy.attempts, copy.reason.as_deref()), (attempt, Some("no space")));
        assert!(copy.is_local && copy.object.is_none());
    }
    assert_eq!(copy.due_at, Some(Time(0).after(60 * MINUTE)));
}

#[test]
fn lost_transfer_is_repeated_at_once_and_counts_no_attempt() {
    let copy = Copy::default().sealed(Time(0)).begun(Task::Put);
    let copy = copy.ended(&End::Lost, &retries(9));
    assert_eq!((copy.status, copy.due_at, copy.attempts), (CopyStatus::Waiting, Some(Time(9)), 0));
}

#[test]
fn page_sealed_during_a_transfer_is_copied_again() {
    let copy = Copy::default().sealed(Time(0)).begun(Task::Put).sealed(Time(5));
    assert!(copy.status == CopyStatus::Running && copy.again);
    let copy = copy.ended(&stored("a"), &retries(9));
    assert_eq!((copy.status, copy.task, copy.again), (CopyStatus::Waiting, Task::Put, false));
}

#[test]
fn local_files_that_differ_from_the_copy_are_copied_again() {
    let copy = verified().begun(Task::Drop).ended(&error(true), &retries(0));
    assert_eq!((copy.status, copy.task, copy.is_local), (CopyStatus::Waiting, Task::Put, true));
    let copy = verified().begun(Task::Drop).ended(&error(false), &retries(0));
    assert_eq!((copy.task, copy.is_local), (Task::Drop, true));
}

#[test]
fn removed_files_are_restored_on_request_and_stay_for_a_while() {
    let removed = verified().begun(Task::Drop).ended(&done(), &retries(2000));
    assert!(!removed.is_local);
    let wanted = removed.requested(Time(3000)).unwrap();
    assert_eq!((wanted.status, wanted.task), (CopyStatus::Waiting, Task::Get));
    assert_eq!(wanted.requested(Time(3001)).unwrap().task, Task::Get);
    let failed = wanted.begun(Task::Get).ended(&error(false), &retries(4000));
    assert_eq!(failed.status, CopyStatus::Idle);
    let back = wanted.begun(Task::Get).ended(&done(), &retries(4000));
    assert!(back.is_usable());
    assert_eq!(back.keep_until, Some(Time(4000).after(RESTORED_STAYS)));
}

#[test]
fn files_requested_during_their_removal_are_restored_after_it() {
    let removing = verified().begun(Task::Drop);
    assert!(!removing.is_usable());
    let copy = removing.requested(Time(1500)).unwrap();
    assert_eq!(copy.task, Task::Drop);
    let copy = copy.ended(&done(), &retries(2000));
    assert_eq!((copy.status, copy.task), (CopyStatus::Waiting, Task::Get));
}

#[test]
fn page_without_copy_cannot_be_restored() {
    assert_eq!(Copy::default().requested(Time(0)), Err(Refused::NoObject));
}

#[test]
fn new_store_gets_what_is_local() {
    assert_eq!(verified().moved("/srv/store", Time(5)), verified());
    assert_eq!(verified().moved("/srv/new", Time(5)).task, Task::Put);
    let removed = verified().begun(Task::Drop).ended(&done(), &retries(2000));
    assert_eq!(removed.moved("/srv/new", Time(5)), removed);
}

#[test]
fn old_verification_is_repeated_before_a_removal() {
    assert!(!verified().needs_reading(Time(2000)));
    assert!(verified().needs_reading(Time(1001).after(VERIFIED_FOR)));
    assert!(Copy::default().needs_reading(Time(0)));
}

proptest! {
    /// Whatever happens: files are only gone if a copy was verified, and no open transfer is left.
    #[test]
    fn local_files_are_never_given_up_without_a_copy(steps in prop::collection::vec(0u8..12, 0..60)) {
        let mut copy = Copy::default();
        for (now, step) in steps.into_iter().enumerate() {
            let (now, retries) = (Time(now as i64), retries(now as i64));
            let is_open = copy.status == CopyStatus::Running;
            let is_stored = copy.object.is_some() && copy.is_local;
            copy = match step {
                0 => copy.sealed(now),
                1 if copy.status == CopyStatus::Waiting => copy.begun(copy.task),
                2 if copy.status == CopyStatus::Idle && is_stored => copy.begun(Task::Drop),
                3 => copy.requested(now).unwrap_or(copy),
                4 if is_open && copy.task == Task::Put => copy.ended(&stored("b"), &retries),
                5 if is_open && copy.task != Task::Put => copy.ended(&done(), &retries),
                6 if is_open => copy.ended(&error(false), &retries),
                7 if is_open && copy.task == Task::Drop => copy.ended(&error(true), &retries),
                8 if is_open => copy.ended(&End::Lost, &retries),
                9 => copy.moved("/srv/new", now),
                _ => copy,
            };
            let was_made = copy != Copy::default();
            prop_assert!(copy.is_local || copy.object.is_some() || !was_made, "{copy:?}");
            prop_assert_eq!(copy.status == CopyStatus::Waiting, copy.due_at.is_some(), "{:?}", copy);
        }
    }
}
