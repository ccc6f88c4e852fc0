package scripts

// keyCount is how many keys the op names.
func (op *Op) keyCount() int {
	n := 1
	if op.kind.lined {
		n++
	}
	if op.fenced {
		n++
	}
	return n
}

func (op *Op) appendKeys(args []any) []any {
	lock, counter := op.keys.Lock, op.keys.Token
	if last := op.keys.last; last != nil {
		lock, counter = last.lock, last.token
	}
	args = append(args, lock)
	if op.kind.lined {
		args = append(args, op.keys.Line)
	}
	if op.fenced {
		args = append(args, counter)
	}
	return args
}

// argCount is how many arguments the op has.
func (op *Op) argCount() int {
	n := len(op.kind.arguments)
	switch {
	case op.several():
		return n + 2
	case op.floored:
		return n + 1
	}
	return n
}

func (op *Op) appendArgs(args []any) []any {
	for _, value := range op.kind.arguments {
		args = append(args, value(op))
	}
	switch {
	case op.floored:
		args = append(args, op.expiry.Milliseconds())
	case op.several():
		args = append(args, "")
	}
	if op.several() {
		args = append(args, op.tokens)
	}
	return args
}

// name is what the batch script calls the op.
func (op *Op) name() any {
	switch {
	case op.several():
		return op.kind.names[3]
	case op.floored:
		return op.kind.names[2]
	case op.fenced:
		return op.kind.names[1]
	}
	return op.kind.names[0]
}

// alone is the command that does nothing but this op.
func (op *Op) alone() []any { return group{op}.args() }
