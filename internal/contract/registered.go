package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lookAgain is how often WatchNames reads the file.
const lookAgain = 10 * time.Second

// ReadNames returns the names by topscloud.json of the host below root; the default ones where there is none.
func ReadNames(root string) (*Names, error) {
	path := filepath.Join(root, TopsCloudConfigPath)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		RegisterResource []string `json:"registerResource"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	names, err := RegisteredNames(file.RegisterResource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return names, nil
}

// NamesChangedError ends a program because every name it uses would be another.
type NamesChangedError struct{ From, To string }

// Error says which file names what.
func (e *NamesChangedError) Error() string {
	return fmt.Sprintf("%s registers %s now, it was %s", TopsCloudConfigPath, e.To, e.From)
}

// WatchNames calls end with a *NamesChangedError when the host's file names another resource, and returns then or
// when ctx ends. A file that cannot be read keeps the program running with what it has; unread is told of it.
func WatchNames(ctx context.Context, root string, names *Names, end context.CancelCauseFunc, unread func(error)) {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch now, err := ReadNames(root); {
		case err != nil:
			unread(err)
		case now.ResourceWhole != names.ResourceWhole:
			end(&NamesChangedError{From: names.ResourceWhole, To: now.ResourceWhole})
			return
		}
	}
}
