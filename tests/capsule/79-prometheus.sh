#!/bin/bash
# The metrics of archivist with Prometheus and node exporter of Debian: all scrapes succeed while pages are archived, and each alert of
# the examples fires when its reason is there, and not before. With EXTENT=full, the scrapes last ten minutes.
# In a full run alone: it installs Prometheus.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"
source "$(dirname "$0")/registries.sh"

own=/srv/test-prometheus
port=$((19400 + $$ % 500))
site_port=$((port + 500))
SECONDS_OF_SCRAPES=60
[[ ${EXTENT-short} != full ]] || SECONDS_OF_SCRAPES=600

clean() {
    in_capsule sh -c 'systemctl stop archivist-metrics.timer "archivist-watch-*.timer" test-prometheus.service test-exporter.service test-tls.service
        rm -rf /etc/archivist/*.watch /usr/local/share/ca-certificates/test-prometheus.crt; update-ca-certificates' >/dev/null 2>&1 || true
    in_capsule rm -rf $own
    forget_configuration
}

# The alerts wait seconds in place of minutes. Pages of other tests would count.
prepare() {
    in_capsule test -e /usr/bin/prometheus || {
        may_skip in_capsule apt-get -q update
        may_skip apt_in_capsule install --no-install-recommends prometheus prometheus-node-exporter openssl ca-certificates
    }
    in_capsule systemctl stop prometheus.service prometheus-node-exporter.service
    forget_pages
    in_capsule sh -c "install -d -o prometheus $own $own/data && cd $own && cp /usr/share/doc/archivist/examples/prometheus/archivist.rules.yml . &&
        sed -i 's/for: [0-9]*[mh]/for: 10s/; s/ > 600\$/ > 100/' archivist.rules.yml && promtool check rules archivist.rules.yml && cat >prometheus.yml" <<END
global: {scrape_interval: 5s, evaluation_interval: 5s}
rule_files: [archivist.rules.yml]
scrape_configs:
  - job_name: node
    static_configs: [{targets: ['127.0.0.1:$((port + 1))']}]
END
    plugin testfiles <<'SH'
#!/bin/sh
echo file >file
SH
    plugin testfails <<'SH'
#!/bin/sh
exit 1
SH
    printf '[Orchestrator]\nHostDelaySec=0\n' | configure
    in_capsule systemd-run --quiet --collect --unit=test-exporter --uid=prometheus --property=SupplementaryGroups=archivist-metrics prometheus-node-exporter \
        --web.listen-address=127.0.0.1:$((port + 1)) --collector.disable-defaults --collector.textfile \
        --collector.textfile.directory=/var/lib/prometheus/node-exporter
    in_capsule systemd-run --quiet --collect --unit=test-prometheus --uid=prometheus prometheus --config.file=$own/prometheus.yml \
        --storage.tsdb.path=$own/data --web.listen-address=127.0.0.1:$port
    wait_for 60 value_is 1 'up'
    in_capsule systemctl start archivist-metrics.timer archivist-metrics.service
    wait_for 60 has_value archivist_info
}

# value QUERY: the value of the only series, or nothing.
value() {
    in_capsule python3 - "$port" "$1" <<'PY'
import json, sys, urllib.parse, urllib.request
query = urllib.parse.urlencode({"query": sys.argv[2]})
answer = json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/api/v1/query?{query}", timeout=20))
result = answer["data"]["result"]
print(result[0]["value"][1] if len(result) == 1 else "")
PY
}
value_is() { [[ $(value "$2" 2>/dev/null) == "$1" ]]; }
has_value() { [[ -n $(value "$1" 2>/dev/null) ]]; }
fires() { value_is 1 "ALERTS{alertname=\"$1\",alertstate=\"firing\"}"; }
firing() { value 'count(ALERTS)'; }

every_scrape_succeeds() {
    local last=$((EPOCHSECONDS + SECONDS_OF_SCRAPES)) rounds=0
    while [[ $EPOCHSECONDS -lt $last ]]; do
        seq -f "http://scraped.test/$rounds-%.0f" 20 | in_capsule archivist add --plugins testfiles --wait - >/dev/null
        rounds=$((rounds + 1))
    done
    assert_eq 1 "$(value "min_over_time(up[${SECONDS_OF_SCRAPES}s])")" "least value of up"
    assert_eq 0 "$(value "max_over_time(node_textfile_scrape_error[${SECONDS_OF_SCRAPES}s])")" "scrapes with an error"
    assert_nothing "alerts" firing
    wait_for 120 value_is $((rounds * 20)) 'archivist_pages{status="sealed"}'
    wait_for 10 value_is $((rounds * 20)) 'archivist_results_total{plugin="testfiles",status="succeeded"}'
    echo "figure: $(value "count_over_time(up[${SECONDS_OF_SCRAPES}s])") scrapes in $SECONDS_OF_SCRAPES s, $(value "changes(node_textfile_mtime_seconds[${SECONDS_OF_SCRAPES}s])") times with new metrics"
}

alert_of_failing_hooks_fires() {
    needs every_scrape_succeeds
    archivist add --plugins testfails --wait http://fails.test/1 >/dev/null || true
    wait_for 120 has_value 'archivist_results_total{plugin="testfails",status="failed"}'
    seq -f 'http://fails.test/2-%.0f' 9 | in_capsule archivist add --plugins testfails --wait - >/dev/null || true
    wait_for 180 fires ArchivistHooksFail
}

alert_of_a_site_that_is_down_fires() {
    needs every_scrape_succeeds
    archivist watch add down "http://127.0.0.1:$site_port/" --status "every 1h" --lighthouse no --crawl no --set DownAfter=1 >/dev/null
    archivist watch run down --kind status --wait >/dev/null || true
    wait_for 180 fires ArchivistSiteDown
}

alert_of_a_certificate_fires() {
    needs every_scrape_succeeds
    in_capsule sh -c "cd $own && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
        -keyout key -out crt 2>/dev/null && cp crt /usr/local/share/ca-certificates/test-prometheus.crt && update-ca-certificates >/dev/null && chmod 644 key"
    in_capsule systemd-run --quiet --collect --unit=test-tls --property=Type=exec openssl s_server -quiet -www -accept $((site_port + 1)) -cert $own/crt -key $own/key
    archivist watch add tls "https://localhost:$((site_port + 1))/" --status "every 1h" --lighthouse no --crawl no >/dev/null
    archivist watch run tls --kind status --wait >/dev/null
    wait_for 180 fires ArchivistCertificateExpires
}

alerts_of_a_full_disk_fire() {
    needs every_scrape_succeeds
    in_capsule sh -c "printf '[Archive]\nMinFreeSpace=900T\n' >${drop_in%/*}/91-test-space.conf && systemctl reload $service"
    archivist add --plugins testfiles http://blocked.test/ >/dev/null
    wait_for 180 fires ArchivistDiskNearlyFull
    wait_for 60 fires ArchivistBlocked
    in_capsule sh -c "rm ${drop_in%/*}/91-test-space.conf && systemctl reload $service"
    wait_for 180 value_is "" 'ALERTS{alertname="ArchivistBlocked"}'
}

alert_of_old_metrics_fires() {
    needs every_scrape_succeeds
    in_capsule systemctl stop archivist-metrics.timer
    wait_for 240 fires ArchivistMetricsOld
}

cases every_scrape_succeeds alert_of_failing_hooks_fires alert_of_a_site_that_is_down_fires alert_of_a_certificate_fires \
    alerts_of_a_full_disk_fire alert_of_old_metrics_fires
