//! Mutexes.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one whose holder has panicked: no program leaves what a mutex guards half changed.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutex_of_a_thread_that_panicked_is_locked() {
        let mutex = Mutex::new(7);
        std::thread::scope(|scope| {
            let ended = scope.spawn(|| {
                let _held = lock(&mutex);
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(ended.join().is_err());
        });
        assert!(mutex.is_poisoned());
        assert_eq!(*lock(&mutex), 7);
    }
}
