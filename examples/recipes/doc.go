// Package recipes is the code of docs/recipes.md, one file for each recipe, with a test that runs it.
package recipes
