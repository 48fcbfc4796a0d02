package driver

// KernelDevice is implemented by devices that run kernels.
type KernelDevice interface {
	// Load makes a module of an image: text that ends with NUL, or a binary. The
	// error of one with mistakes carries the compiler's words.
	Load(image []byte) (Module, error)
}

// Module is a loaded program.
type Module interface {
	// Function returns a function of the program by its name in it.
	Function(name string) (Function, error)
	// Global returns the memory of a variable of the program by its name in it.
	Global(name string) (start, size uint64, err error)
	// Close gives the module up; nothing of it is pending.
	Close()
}

// Function is a function that streams of its device can launch.
type Function interface {
	// Threads returns how many threads a block may have.
	Threads() int
	// Shared returns how many bytes of dynamic shared memory a block may have.
	Shared() int
	// Parameters returns the size of each parameter in bytes; nil if it is not known.
	Parameters() []int
	// Attributes returns what the library knows of the function.
	Attributes() (Attributes, error)
}

// Attributes are figures of a function, -1 where the library has none.
type Attributes struct {
	// Shared is the shared memory of a block that the program declares, Constant the constant memory, and Local the local
	// memory of a thread, in bytes.
	Shared, Constant, Local int
	// Registers is how many registers a thread takes.
	Registers int
	// PTXVersion and BinaryVersion are ten times the compute capability that the program was compiled for.
	PTXVersion, BinaryVersion int
}

// Cell is the unit in which arguments of a Launch are placed: each takes as many cells as its size
// needs, and one at least.
const Cell = 16

// Cells returns how many cells an argument of a size takes.
func Cells(size int) int { return max(1, (size+Cell-1)/Cell) }

// Launch describes a launch of a function.
type Launch struct {
	Function    Function
	Grid, Block [3]uint32
	// Cluster is the number of blocks of a cluster, for three dimensions; all 0 without
	// clusters.
	Cluster [3]uint32
	// Shared is the bytes of dynamic shared memory.
	Shared uint32
	// Args are the arguments' values one after the other, each at the start of its cells.
	Args []byte
	// Cooperative launches run all blocks at once or fail.
	Cooperative bool
	Tag         Tag
}

// SimulatedFunction is a Function of a simulated device: what runs it is a native function
// on the streams of the device.
type SimulatedFunction interface {
	Function
	// Prepare returns a launch that can run any number of times, one after the other. A
	// kernel may access the memory only, which is sorted and disjoint. The list, which may be long, does not
	// change any more, and is the same slice at each launch until memory changes.
	Prepare(l Launch, memory []Extent) (PreparedLaunch, error)
	// Accesses returns a letter for each parameter, by what the kernel does to the memory behind
	// its value: r, w, b for both or for what only a run can tell, and - for nothing.
	Accesses() string
	// Places returns where each parameter lies in the bytes of all of them.
	Places() []int
}

// Extent is the addresses from Start to before End.
type Extent struct{ Start, End uint64 }

// PreparedLaunch is a launch with its arguments.
type PreparedLaunch interface {
	// Run executes the launch on the calling thread. With check it notes the bytes that are
	// accessed, and looks for mistakes that do not end the kernel.
	Run(check bool) Ran
}

// Ran is what a run of a kernel was.
type Ran struct {
	// Reads and Writes are the bytes that were accessed, as far as they were noted.
	Reads, Writes []Extent
	// Inputs are those of Reads that the kernel had not written itself before.
	Inputs []Extent
	// Findings are the mistakes that did not end the kernel.
	Findings []KernelFinding
	// Fault has the text of what the kernel did wrong, and CUDA's code; nil if it ended well.
	Fault *Error
}

// KernelFinding is a mistake of a kernel.
type KernelFinding struct {
	// Check is the tool of compute-sanitizer that finds such mistakes, for example "racecheck".
	Check string
	// Place is the same for each time that the same instructions did it.
	Place string
	// Text says what happened, in the words of that tool, and who did it.
	Text string
}
