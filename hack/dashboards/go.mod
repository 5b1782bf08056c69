// hack/dashboards writes the Grafana dashboards of manifests/dashboards, apart from the project's own module.
module github.com/topscloud/topscloud/hack/dashboards

go 1.26.6

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
