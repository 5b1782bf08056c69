// Package docker configures the Docker engine by /etc/docker/daemon.json.
//
// The file is JSON, which has no comments to mark our parts, so the text before is kept beside it in
// daemon.json.before-enflame. Undoing gives that text back as long as the rest of the file is as we left it;
// if somebody has edited it since, our two keys are taken out of what is there now.
package docker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/engine"
)

// ConfigPath is the engine's configuration, KeptPath what we keep of it.
const (
	ConfigPath = "/etc/docker/daemon.json"
	KeptPath   = "/etc/docker/daemon.json.before-enflame"
)

const keptVersion = "v1"

// kept is the text before us.
type kept struct {
	Version string `json:"version"`
	// Written is the sum of the text that we wrote.
	Written string `json:"written"`
	// Before is the text that was there; nil was no file.
	Before *string `json:"before"`
	// Default is the default runtime that was named; empty is none.
	Default string `json:"default,omitempty"`
}

// Configure returns what makes Docker know the runtime.
func Configure(o engine.Options) ([]engine.Change, error) {
	s, err := load(o.Root)
	if err != nil {
		return nil, err
	}
	before, err := s.before()
	if err != nil {
		return nil, err
	}
	config, err := parse(before)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	runtimes, err := config.object("runtimes")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	if runtimes.find(contract.RuntimeName) >= 0 {
		return nil, fmt.Errorf("%s: a runtime %q is configured already, and not by this tool: remove it first", s.path, contract.RuntimeName)
	}
	if err := errors.Join(runtimes.set(contract.RuntimeName, map[string]string{"path": o.RuntimePath}), config.set("runtimes", runtimes)); err != nil {
		return nil, err
	}
	k := kept{Version: keptVersion}
	if i := config.find("default-runtime"); i >= 0 {
		if err := json.Unmarshal(config[i].value, &k.Default); err != nil {
			return nil, fmt.Errorf("%s: default-runtime: %w", s.path, err)
		}
	}
	if o.SetAsDefault {
		if err := config.set("default-runtime", contract.RuntimeName); err != nil {
			return nil, err
		}
	}
	text, err := config.text()
	if err != nil {
		return nil, err
	}
	k.Written = sum(text)
	if before != nil {
		words := string(before)
		k.Before = &words
	}
	keptText, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	// What is kept goes first: without it nothing could be undone.
	return engine.Real([]engine.Change{
		{Path: s.keptPath, Old: s.keptText, New: append(keptText, '\n')},
		{Path: s.path, Old: s.text, New: text},
	}), nil
}

// Unconfigure returns what makes Docker as it was.
func Unconfigure(o engine.Options) ([]engine.Change, error) {
	s, err := load(o.Root)
	if err != nil || s.kept == nil {
		return nil, err
	}
	before, err := s.before()
	if err != nil {
		return nil, err
	}
	return engine.Real([]engine.Change{
		{Path: s.path, Old: s.text, New: before},
		{Path: s.keptPath, Old: s.keptText},
	}), nil
}

// state is what the host has.
type state struct {
	path, keptPath string
	text, keptText []byte
	kept           *kept
}

func load(root string) (*state, error) {
	s := &state{path: filepath.Join(root, ConfigPath), keptPath: filepath.Join(root, KeptPath)}
	var err error
	if s.text, err = engine.Read(s.path); err != nil {
		return nil, err
	}
	if s.keptText, err = engine.Read(s.keptPath); err != nil || s.keptText == nil {
		return s, err
	}
	s.kept = &kept{}
	if err := json.Unmarshal(s.keptText, s.kept); err != nil {
		return nil, fmt.Errorf("%s: %w", s.keptPath, err)
	}
	if s.kept.Version != keptVersion {
		return nil, fmt.Errorf("%s: version %q: want %q", s.keptPath, s.kept.Version, keptVersion)
	}
	return s, nil
}

// before returns the text as it is without us; nil is no file.
func (s *state) before() ([]byte, error) {
	switch {
	case s.kept == nil || s.text == nil:
		return s.text, nil
	case sum(s.text) == s.kept.Written:
		if s.kept.Before == nil {
			return nil, nil
		}
		return []byte(*s.kept.Before), nil
	case s.kept.Before != nil && *s.kept.Before == string(s.text):
		return s.text, nil // we were stopped before the file was written
	}
	config, err := parse(s.text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	runtimes, err := config.object("runtimes")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	runtimes.remove(contract.RuntimeName)
	if len(runtimes) == 0 {
		config.remove("runtimes")
	} else if err := config.set("runtimes", runtimes); err != nil {
		return nil, err
	}
	var name string
	if i := config.find("default-runtime"); i >= 0 && json.Unmarshal(config[i].value, &name) == nil && name == contract.RuntimeName {
		config.remove("default-runtime")
		if s.kept.Default != "" {
			if err := config.set("default-runtime", s.kept.Default); err != nil {
				return nil, err
			}
		}
	}
	return config.text()
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

// object is a JSON object whose keys keep their order.
type object []entry

type entry struct {
	key   string
	value json.RawMessage
}

// parse reads an object; no text is an empty one.
func parse(text []byte) (object, error) {
	// The JSON package reads other bytes as U+FFFD, so the file would not come back as it was.
	if !utf8.Valid(text) {
		return nil, errors.New("not UTF-8")
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, errors.Join(errors.New("want a JSON object"), err)
	}
	var out object
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		e := entry{key: key.(string)} // the decoder gives nothing else here
		if err := decoder.Decode(&e.value); err != nil {
			return nil, err
		}
		if out.find(e.key) >= 0 {
			return nil, fmt.Errorf("key %q stands twice", e.key)
		}
		out = append(out, e)
	}
	if _, err := decoder.Token(); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something stands behind the object")
	}
	return out, nil
}

func (o object) find(key string) int {
	return slices.IndexFunc(o, func(e entry) bool { return e.key == key })
}

func (o object) object(key string) (object, error) {
	i := o.find(key)
	if i < 0 {
		return nil, nil
	}
	sub, err := parse(o[i].value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return sub, nil
}

func (o *object) set(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if i := o.find(key); i >= 0 {
		(*o)[i].value = raw
	} else {
		*o = append(*o, entry{key, raw})
	}
	return nil
}

func (o *object) remove(key string) {
	*o = slices.DeleteFunc(*o, func(e entry) bool { return e.key == key })
}

// MarshalJSON writes the keys in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, e := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := json.Marshal(e.key)
		if err != nil {
			return nil, err
		}
		out.Write(key)
		out.WriteByte(':')
		out.Write(e.value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func (o object) text() ([]byte, error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "    "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
