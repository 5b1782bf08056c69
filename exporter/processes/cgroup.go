package processes

import "strings"

// PodOf returns the UID of the pod that a process is in, by the text of its /proc/<pid>/cgroup; empty where it is in
// none, or where the text names several.
//
// Version 1 has a line for each hierarchy, version 2 has one. Kubelet calls a pod's group pod<uid> with driver
// cgroupfs and kubepods[-<class>]-pod<uid with _ for ->.slice with systemd.
func PodOf(cgroup string) string {
	uid := ""
	for line := range strings.Lines(cgroup) {
		// hierarchy:controllers:path, and the path may have colons itself
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch found := podOfPath(parts[2]); {
		case found == "", found == uid:
		case uid == "":
			uid = found
		default:
			return ""
		}
	}
	return uid
}

// podOfPath finds the outermost pod of a path.
func podOfPath(path string) string {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	relative := segments[0] == ".."
	before := ""
	for _, s := range segments {
		if uid := podOfSegment(before, s); uid != "" {
			return uid
		}
		// A path that is relative to our own group and goes down into a container is that of a container of our own
		// pod. What stands below was named by that container.
		if relative && s != ".." && !kubepods(s) {
			return ""
		}
		before = s
	}
	return ""
}

// podOfSegment reads one group's name; before is the name of the group above it.
func podOfSegment(before, s string) string {
	// Driver cgroupfs: pod<uid>, in kubepods or a class below it, or next to our own pod.
	if uid, found := strings.CutPrefix(s, "pod"); found {
		if before == "kubepods" || before == "burstable" || before == "besteffort" || before == ".." {
			return podUID(uid)
		}
		return ""
	}
	// Driver systemd, where kubelet and engine do not agree: <slice>:cri-containerd:<container>, as one group.
	s, _, _ = strings.Cut(s, ":")
	name, found := strings.CutSuffix(s, ".slice")
	if !found {
		return ""
	}
	group, uid, found := strings.Cut(name, "-pod")
	if !found || !kubepods(group) {
		return ""
	}
	return podUID(strings.ReplaceAll(uid, "_", "-"))
}

// kubepods says whether a group is one of those above pods: kubepods, a class of it, either with the name of kubelet's
// own root group before it, or a class alone.
func kubepods(s string) bool {
	s = strings.TrimSuffix(s, ".slice")
	s = strings.TrimSuffix(strings.TrimSuffix(s, "-burstable"), "-besteffort")
	return s == "kubepods" || strings.HasSuffix(s, "-kubepods") || s == "burstable" || s == "besteffort"
}

// podUID returns s where it has the form of a pod's UID: that of the API server, or the hash that kubelet gives a
// static pod.
func podUID(s string) string {
	const hash, withDashes = 32, 36
	if len(s) != hash && len(s) != withDashes {
		return ""
	}
	for i := range len(s) {
		dash := len(s) == withDashes && (i == 8 || i == 13 || i == 18 || i == 23)
		switch c := s[i]; {
		case dash && c == '-', !dash && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f'):
		default:
			return ""
		}
	}
	return s
}
