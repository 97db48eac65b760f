/** What is there already is used at once: of thousands of answers in a second each promise is felt. */
export function whenThere<Value, Made>(
  value: Value | Promise<Value>,
  make: (value: Value) => Made | Promise<Made>,
): Made | Promise<Made> {
  return value instanceof Promise ? value.then(make) : make(value);
}
