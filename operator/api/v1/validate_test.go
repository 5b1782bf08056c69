package v1_test

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec string
		want []string // parts of each error, in order; none: it is valid
	}{
		"nothing":                                {"{}", nil},
		"sharing beside devices":                 {"{devicePlugin: {}, gcusharePlugin: {memoryUnit: '0.001'}}", nil},
		"sharing under the same name as devices": {"{devicePlugin: {name: a}, gcusharePlugin: {name: a}}", nil},
		"empty strings are not given":            {"{exporter: {name: '', namespace: '', image: '', repository: '', version: '', imagePullPolicy: ''}}", nil},
		"both names":                             {"{plugin: {}, devicePlugin: {}}", []string{"spec.plugin: Forbidden: plugin is another name of devicePlugin"}},
		"memory unit":                            {"{gcusharePlugin: {memoryUnit: '2'}}", []string{`spec.gcusharePlugin.memoryUnit: Unsupported value: "2": supported values: "1", "0.1", "0.01", "0.001"`}},
		"node name":                              {"{gcusharePlugin: {gcushareNodes: [a, N_1]}}", []string{`spec.gcusharePlugin.gcushareNodes[1]: Invalid value: "N_1"`}},
		"driver mode":                            {"{driver: {mode: host}}", []string{`spec.driver.mode: Unsupported value: "host": supported values: "image", "preinstalled"`}},
		"name":                                   {"{gfd: {name: Exporter}}", []string{`spec.gfd.name: Invalid value: "Exporter": want lower-case letters`}},
		"long name":                              {"{gfd: {name: " + strings.Repeat("a", 64) + "}}", []string{`spec.gfd.name: Too long`}},
		"the alias is named as written":          {"{plugin: {namespace: a.b}}", []string{`spec.plugin.namespace: Invalid value: "a.b"`}},
		"image with a tag":                       {"{nfd: {worker: {image: 'nfd:v1'}}}", []string{`spec.nfd.worker.image: Invalid value: "nfd:v1": want the name of an image alone`}},
		"repository":                             {"{npd: {repository: 'https://r.test/'}}", []string{`spec.npd.repository: Invalid value: "https://r.test/"`}},
		"version":                                {"{toolkit: {version: 'a b'}}", []string{`spec.toolkit.version: Invalid value: "a b": want a tag`}},
		"pull policy":                            {"{driver: {imagePullPolicy: Sometimes}}", []string{`spec.driver.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`}},
		"env":                                    {"{driver: {env: [{name: A}, {name: A}, {name: 'B='}]}}", []string{`spec.driver.env[1].name: Duplicate value: "A"`, `spec.driver.env[2].name: Invalid value: "B="`}},
		"node selector":                          {"{exporter: {nodeSelector: {b: 'x y', 'a b': c}}}", []string{`spec.exporter.nodeSelector: Invalid value: "a b": is no label key`, `spec.exporter.nodeSelector[b]: Invalid value: "x y"`}},
		"toleration":                             {"{exporter: {tolerations: [{operator: Is, effect: Never}]}}", []string{`spec.exporter.tolerations[0].operator: Unsupported value: "Is"`, `spec.exporter.tolerations[0].effect: Unsupported value: "Never"`}},
		"update type":                            {"{exporter: {updateStrategy: {type: Recreate}}}", []string{`spec.exporter.updateStrategy.type: Unsupported value: "Recreate": supported values: "RollingUpdate", "OnDelete"`}},
		"update of the scheduler":                {"{gcushareScheduler: {updateStrategy: {type: OnDelete}}}", []string{`spec.gcushareScheduler.updateStrategy.type: Invalid value: "OnDelete"`}},
		"update amounts":                         {"{exporter: {updateStrategy: {rollingUpdate: {maxUnavailable: ten, maxSurge: -1}}}}", []string{`rollingUpdate.maxUnavailable: Invalid value: "ten": want a whole number`, `rollingUpdate.maxSurge: Invalid value: -1`}},
		"rolling by hand":                        {"{exporter: {updateStrategy: {type: OnDelete, rollingUpdate: {}}}}", []string{`spec.exporter.updateStrategy.rollingUpdate: Forbidden`}},
		"one workload twice":                     {"{gfd: {name: enflame-gcu-exporter}, exporter: {}}", []string{`spec.gfd.name: Invalid value: "enflame-gcu-exporter": spec.exporter has this name in namespace kube-system too`}},
		"one name in two namespaces":             {"{gfd: {name: enflame-gcu-exporter, namespace: a}, exporter: {}}", nil},
		"a name twice, one not deployed":         {"{gfd: {name: enflame-gcu-exporter}, exporter: {notDeploy: true}}", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := spec(t, tt.spec).Validate()
			if len(errs) != len(tt.want) {
				t.Fatalf("Validate() = %v, want %q", errs, tt.want)
			}
			for i, want := range tt.want {
				if got := errs[i].Error(); !strings.Contains(got, want) {
					t.Errorf("error %d = %s, want %s", i, got, want)
				}
			}
		})
	}
}
