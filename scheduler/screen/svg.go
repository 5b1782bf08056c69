package screen

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// The size of a character cell and the colours of a picture.
const (
	cellWidth  = 8.4
	cellHeight = 19
	fontSize   = 14
	margin     = 16
	background = "#11151c"
)

var fills = [...]string{
	Plain: "#c9d1d9", Faint: "#6b7685", Strong: "#ffffff", Good: "#56d364", Part: "#4dd0e1", Full: "#79a8ff", Warn: "#e3b341", Bad: "#ff7b72",
}

// SVG returns the page as a picture that looks like a terminal.
func (p *Page) SVG() []byte {
	cols := 0
	for i := range p.rows {
		cols = max(cols, p.rows[i].cols)
	}
	var b bytes.Buffer
	w, h := 2*margin+float64(cols)*cellWidth, 2*margin+len(p.rows)*cellHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", background)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="%d" style="white-space:pre">`+"\n", fontSize)
	for i := range p.rows {
		y, col := margin+i*cellHeight+fontSize, 0
		for _, s := range p.rows[i].spans {
			n := Columns(s.text)
			if text := strings.TrimSpace(s.text); text != "" {
				// Renderers differ in what they make of spaces at either end, so those become a move. The
				// length is fixed, so that columns stay aligned in whatever font there is.
				start := col + Columns(s.text[:strings.Index(s.text, text)])
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s" textLength="%.1f"`, margin+float64(start)*cellWidth, y, fills[s.style], float64(Columns(text))*cellWidth)
				if s.style == Strong {
					b.WriteString(` font-weight="bold"`)
				}
				b.WriteByte('>')
				_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
				b.WriteString("</text>\n")
			}
			col += n
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}
