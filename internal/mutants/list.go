package main

// The breaks, by the rule that each violates.
var mutants = []mutant{
	{
		"P1: the number in the field is used again",
		"rlock/client.go", "c.numbers.Add(1)", "c.numbers.Load()",
		"./rlock", "P1_",
	},
	{
		"P2: acquire counts a repeat",
		"scripts/acquire.lua", "  return {1, token}\nend\nif redis", "  redis.call('HINCRBY', KEYS[1], ARGV[2], 1)\n  return {1, token}\nend\nif redis",
		"./scripts", "P2_|Model",
	},
}
