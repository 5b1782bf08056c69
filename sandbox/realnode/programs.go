package realnode

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// libraryDirs are where the loader looks besides its own folder, as Debian, Fedora and others have them.
var libraryDirs = []string{"/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"}

// ImportProgram gives the engine an image of that name with one program of this host, which it starts, and the
// libraries of this host that the program is linked with. Pods that use it say imagePullPolicy: Never.
func (n *Node) ImportProgram(ctx context.Context, image, path string) error {
	files, err := withLibraries(path)
	if err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	archive := n.layout.image(filepath.Base(path))
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	if err := errors.Join(writeImage(f, image, files), f.Close()); err != nil {
		return err
	}
	return n.importImage(ctx, image, archive)
}

// withLibraries reads a program, its loader and all libraries it needs, to lie where the loader looks.
func withLibraries(path string) ([]imageFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	files := []imageFile{{"/" + filepath.Base(path), text}}
	interpreter, needed, err := linked(path)
	if err != nil || interpreter == "" {
		return files, err
	}
	if text, err = os.ReadFile(interpreter); err != nil {
		return nil, err
	}
	files = append(files, imageFile{interpreter, text})
	have := map[string]bool{filepath.Base(interpreter): true}
	for len(needed) > 0 {
		name := needed[0]
		needed = needed[1:]
		if have[name] {
			continue
		}
		have[name] = true
		found, err := findLibrary(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if text, err = os.ReadFile(found); err != nil {
			return nil, err
		}
		_, more, err := linked(found)
		if err != nil {
			return nil, err
		}
		needed = append(needed, more...)
		files = append(files, imageFile{found, text})
	}
	return files, nil
}

// linked returns a file's loader, empty where it has none, and the libraries it names.
func linked(path string) (interpreter string, needed []string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err != nil {
			return "", nil, fmt.Errorf("%s: its loader: %w", path, err)
		}
		interpreter = strings.TrimRight(string(text), "\x00")
	}
	needed, err = f.ImportedLibraries()
	return interpreter, needed, err
}

func findLibrary(name string) (string, error) {
	for _, dir := range libraryDirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("library %s: %w in %s", name, fs.ErrNotExist, strings.Join(libraryDirs, ", "))
}
