package v1_test

import (
	"slices"
	"testing"

	v1 "github.com/topscloud/topscloud/operator/api/v1"
)

func TestImages(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	tests := map[string]struct {
		spec string
		kind v1.Kind
		want []string
	}{
		"nothing said is the release's":                {"{exporter: {}}", v1.KindExporter, []string{"registry.test/topscloud/gcu-exporter:v9"}},
		"an image of the release's registry":           {"{exporter: {image: mine}}", v1.KindExporter, []string{"registry.test/topscloud/mine:v9"}},
		"a version in the release's registry":          {"{exporter: {version: v1}}", v1.KindExporter, []string{"registry.test/topscloud/gcu-exporter:v1"}},
		"another registry has its own latest":          {"{exporter: {repository: r.test/a}}", v1.KindExporter, []string{"r.test/a/gcu-exporter:latest"}},
		"a digest":                                     {"{exporter: {repository: r.test/a, version: '" + digest + "'}}", v1.KindExporter, []string{"r.test/a/gcu-exporter@" + digest}},
		"the alias":                                    {"{plugin: {version: v1}}", v1.KindDevicePlugin, []string{"registry.test/topscloud/gcu-device-plugin:v1"}},
		"nfd is upstream's, once for both programs":    {"{nfd: {}}", v1.KindNFD, []string{"registry.k8s.io/nfd/node-feature-discovery:v0.17.3"}},
		"nfd's programs may differ":                    {"{nfd: {master: {version: v1}}}", v1.KindNFD, []string{"registry.k8s.io/nfd/node-feature-discovery:v1", "registry.k8s.io/nfd/node-feature-discovery:v0.17.3"}},
		"a driver of the host has no image":            {"{driver: {}}", v1.KindDriver, nil},
		"a driver with a version is an image":          {"{driver: {version: 1.8.7}}", v1.KindDriver, []string{"registry.test/topscloud/gcu-driver:1.8.7"}},
		"a driver of the host, whatever image it says": {"{driver: {version: 1.8.7, mode: preinstalled}}", v1.KindDriver, nil},
		"what is not named has none":                   {"{}", v1.KindGFD, nil},
	}
	for name, tt := range tests {
		if got := spec(t, tt.spec).Normalised(release).Images(tt.kind); !slices.Equal(got, tt.want) {
			t.Errorf("%s: Images(%s) = %q, want %q", name, tt.kind, got, tt.want)
		}
	}
}

func TestForeignImages(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec string
		want []v1.Kind
	}{
		"ours":                {"{exporter: {}}", nil},
		"the vendor's":        {"{gfd: {}, exporter: {repository: artifact.enflame.cn/enflame_docker_images/enflame}}", []v1.Kind{v1.KindExporter}},
		"one of two programs": {"{nfd: {worker: {repository: artifact.enflame.cn/a}}}", []v1.Kind{v1.KindNFD}},
		"a copy of them":      {"{exporter: {repository: mirror.test/artifact.enflame.cn}}", nil},
		"not to be deployed":  {"{exporter: {notDeploy: true, repository: artifact.enflame.cn/a}}", nil},
		"allowed":             {"{allowForeignImage: true, exporter: {repository: artifact.enflame.cn/a}}", nil},
		"a driver that is installed needs no image": {"{driver: {mode: preinstalled, repository: artifact.enflame.cn/a}}", nil},
	}
	for name, tt := range tests {
		if got := spec(t, tt.spec).Normalised(release).ForeignImages(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: ForeignImages() = %v, want %v", name, got, tt.want)
		}
	}
}
