//! Certificates of watched sites and of clients.

use super::{status, watched};
use crate::tests::bed::Bed;
use archivist_core::model::{CheckKind, Time};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn certificates_are_listed_from_their_warning_until_the_site_is_not_checked_any_more() {
    let mut bed = watched("");
    let record = |end: Time| {
        format!(
            r#"{{"ok":true,"status_code":200,"certificate_expires":"{end}","certificate_warn_days":14}}"#
        )
    };
    let soon = |bed: &mut Bed| {
        let now = bed.now;
        bed.look(|tx| tx.certificates(now))
    };
    let listed = |end: Time| ("site".to_owned(), "http://a.example/".to_owned(), end);
    let end = bed.now.after(DAY * 20);
    status(&mut bed, &record(end));
    assert!(soon(&mut bed).is_empty());
    let now = bed.now;
    let sites = bed.look(|tx| tx.site_health(now));
    let sites: Vec<_> = sites
        .iter()
        .map(|site| (site.watch.as_str(), site.is_down, site.certificate_expires))
        .collect();
    assert_eq!(sites, [("site", false, Some(end))], "metrics have sites that never failed");
    bed.pass(5 * 86_400_000);
    assert!(soon(&mut bed).is_empty(), "15 days are left");
    bed.pass(86_400_000);
    assert_eq!(soon(&mut bed), [listed(end)], "older than its retention, but the newest");
    let renewed = bed.now.after(DAY * 90);
    status(&mut bed, &record(renewed));
    assert!(soon(&mut bed).is_empty());
    let over = bed.now.before(DAY);
    status(&mut bed, &record(over));
    assert_eq!(soon(&mut bed), [listed(over)]);
    bed.pass(9 * 86_400_000);
    assert!(soon(&mut bed).is_empty());
}

#[test]
fn unit_of_a_check_gets_certificate_and_key() {
    let mut bed = watched("ClientCertificate=/etc/archivist/client.pem\nClientKey=client.key\n");
    bed.queue("site", &[CheckKind::Status, CheckKind::Crawl, CheckKind::Lighthouse]).unwrap();
    bed.until_quiet();
    let own = [
        ("client.certificate".to_owned(), "/etc/archivist/client.pem".to_owned()),
        ("client.key".to_owned(), "client.key".to_owned()),
    ];
    let unit = bed.running_of("-check-status-").pop().unwrap();
    for (kind, count) in [("status", 2), ("crawl", 2), ("lighthouse", 0)] {
        let unit = bed.running_of(&format!("-check-{kind}-")).pop().unwrap();
        assert_eq!(bed.world.units[&unit].credentials, own[..count], "{kind}");
    }
    bed.world.end(&unit, 1, 243, "exit-code");
    bed.until_quiet();
    let check = bed.history("site").into_iter().find(|it| it.ok.is_none() && it.ended_at.is_some());
    let error = check.unwrap().record.error.unwrap();
    assert!(error.contains("ClientCertificate='/etc/archivist/client.pem'"), "{error}");
}
