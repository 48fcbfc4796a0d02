// Command faults lets every function of the CUDA driver fail that the backend
// calls, one call at a time, and looks at what comes of it.
//
// Usage: go run ./cuda/faults [-write FILE] [-only FUNCTION]
//
// The driver is the look-alike. For each function, each of its first calls in a
// program that uses every feature, and each code, the program runs once: it must
// end, nothing may be left, and the error must name the function and the code.
// Each function has a process of its own, so that a crash or a hang is seen.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"halstream/cuda/fakectl"
)

// calls is how many of a function's calls are made to fail, and codes with what.
const calls = 5

var codes = []int{1, 2, 801, 600, 700, 999}

// names of the codes, for the table.
var names = map[int]string{
	1: "invalid value", 2: "out of memory", 801: "not supported", 600: "not ready",
	700: "illegal address", 999: "unknown",
}

// childLimit is how long the cells of one function may take together.
const childLimit = 3 * time.Minute

func main() {
	write := flag.String("write", "", "page to write the table into")
	only := flag.String("only", "", "one function instead of all")
	child := flag.String("child", "", "run the cells of one function (for the program itself)")
	list := flag.Bool("list", false, "print the functions that the program calls (for the program itself)")
	least := flag.Bool("old", false, "on the oldest driver (for the program itself)")
	flag.Parse()
	if *least {
		old()
	}
	// Functions of the driver's thread wait for each other where there is one such thread.
	_ = os.Setenv("FAKECUDA_HOST_THREADS", "8")
	fake, err := fakectl.Open(fakectl.Path())
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	}
	switch {
	case *list:
		listCalls(fake)
	case *child != "":
		sweep(fake, *child)
	default:
		os.Exit(parent(*only, *write))
	}
}

// task is a function and the driver on which its calls fail.
type task struct {
	function string
	called   int
	old      bool
}

// tasks returns what to do: all functions on a new driver, and on the oldest one
// those that only it makes the backend call.
func tasks(only string) ([]task, error) {
	now, err := called(false)
	if err != nil {
		return nil, err
	}
	then, err := called(true)
	if err != nil {
		return nil, err
	}
	for f := range wordy {
		now[f] = 0
	}
	var all []task
	for f, n := range now {
		all = append(all, task{f, n, false})
	}
	for f, n := range then {
		if _, known := now[f]; !known {
			all = append(all, task{f, n, true})
		}
	}
	all = slices.DeleteFunc(all, func(t task) bool { return only != "" && t.function != only })
	slices.SortFunc(all, func(a, b task) int { return strings.Compare(a.function, b.function) })
	return all, nil
}

// parent runs a process for each function and tells what came of it.
func parent(only, write string) int {
	functions, err := tasks(only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults: the program does not run without a fault:", err)
		return 1
	}
	if len(functions) == 0 {
		fmt.Fprintf(os.Stderr, "faults: the program does not call %q\n", only)
		return 2
	}
	rows := make([]row, len(functions))
	var group sync.WaitGroup
	turns := make(chan struct{}, max(1, runtime.NumCPU()))
	for i, f := range functions {
		group.Add(1)
		go func() {
			defer group.Done()
			turns <- struct{}{}
			rows[i] = cells(f)
			<-turns
			fmt.Println(rows[i].line())
		}()
	}
	group.Wait()
	bad := 0
	for _, r := range rows {
		for _, text := range r.Bad {
			fmt.Println("  ", text)
			bad++
		}
	}
	fmt.Printf("%s, %d bad\n", sum(rows).line(), bad)
	if write != "" && only == "" {
		if err := writePage(write, rows); err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			return 1
		}
	}
	if bad > 0 {
		return 1
	}
	return 0
}

// called returns how often the program calls each function when nothing fails.
func called(old bool) (map[string]int, error) {
	out, err := exec.Command(os.Args[0], "-list", fmt.Sprintf("-old=%v", old)).Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	counts := map[string]int{}
	return counts, json.Unmarshal(out, &counts)
}

// cells runs the process of one function.
func cells(t task) row {
	ctx, cancel := context.WithTimeout(context.Background(), childLimit)
	defer cancel()
	var out, errs bytes.Buffer
	command := exec.CommandContext(ctx, os.Args[0], "-child", t.function, fmt.Sprintf("-old=%v", t.old))
	command.Stdout, command.Stderr = &out, &errs
	failed := command.Run()
	r := row{Function: t.function, Called: t.called}
	lines := bufio.NewScanner(&out)
	last := ""
	for lines.Scan() {
		var c cell
		if json.Unmarshal(lines.Bytes(), &c) != nil {
			last = lines.Text() // the cell that is about to run
			continue
		}
		r.add(c)
	}
	if failed != nil {
		what := "crashed"
		if ctx.Err() != nil {
			what = "hung"
		}
		words := strings.TrimSpace(errs.String())
		r.Bad = append(r.Bad, fmt.Sprintf("%s %s: %s: %.1500s", t.function, what, last, words))
	}
	return r
}
