package main

import (
	"fmt"
	"os"
	"strings"

	"halstream/cuda"
)

// row is what came of the cells of one function.
type row struct {
	Function                        string
	Called                          int
	Cells, Reported, Lost, Absorbed int
	Bad                             []string
}

func (r *row) add(c cell) {
	r.Cells++
	switch c.Outcome {
	case reported:
		r.Reported++
	case lost:
		r.Lost++
	default:
		r.Absorbed++
	}
	for _, text := range c.Bad {
		r.Bad = append(r.Bad, fmt.Sprintf("%s, call %d with %d (%s): %s", c.Function, c.Call, c.Code, names[c.Code], text))
	}
}

func (r row) line() string {
	return fmt.Sprintf("%-30s %4d cells: %4d reported, %4d with the device lost, %4d absorbed, %d bad",
		r.Function, r.Cells, r.Reported, r.Lost, r.Absorbed, len(r.Bad))
}

func sum(rows []row) row {
	all := row{Function: fmt.Sprintf("%d functions", len(rows))}
	for _, r := range rows {
		all.Called += r.Called
		all.Cells += r.Cells
		all.Reported += r.Reported
		all.Lost += r.Lost
		all.Absorbed += r.Absorbed
		all.Bad = append(all.Bad, r.Bad...)
	}
	return all
}

// The table stands between these lines of the page.
const (
	begin = "<!-- the table of make faults begins here -->"
	end   = "<!-- and ends here -->"
)

// functionNames returns those of the driver that the backend may call.
func functionNames() []string { return cuda.Symbols() }

func writePage(path string, rows []row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("%s has no place for the table: %s ... %s", path, begin, end)
	}
	var out strings.Builder
	out.WriteString("| function | called | cells | reported | device lost | absorbed | crashed, hung, leaked or misnamed |\n")
	out.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range append(rows, sum(rows)) {
		name := "`" + r.Function + "`"
		if strings.Contains(r.Function, " ") {
			name = "**" + r.Function + "**"
		}
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %d | %d | %d |\n",
			name, r.Called, r.Cells, r.Reported, r.Lost, r.Absorbed, len(r.Bad))
	}
	return os.WriteFile(path, []byte(head+begin+"\n"+out.String()+end+tail), 0o644)
}
