/** The phases of a load. */
enum Phase {
  WARMING,
  MEASURING,
  /** No new acquires; those that wait still get their turn. */
  ENDING
}
