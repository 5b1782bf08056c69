package main

import "fmt"

// words is a text in English and Chinese.
type words struct{ en, zh string }

// Grafana shows a title's variables filled in, and has no texts by language. So each title is a hidden variable whose
// query gives one of two texts by the value of variable lang, which the reader chooses: 0 is English, 1 Chinese. The
// query reads no metric; Prometheus evaluates it from constants.
func (w words) query() string {
	return fmt.Sprintf(`query_result(label_replace(vector($lang) == 0, "text", %q, "", "") or label_replace(vector($lang) == 1, "text", %q, "", ""))`, w.en, w.zh)
}

const (
	textPattern  = `/text="(.*?)"/`
	langVariable = "English : 0,中文 : 1"
)
