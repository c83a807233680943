/** `own`: steps of instrumented modules and their regular expressions. `builtIn`: elements that built-ins touched. */
export const counter = { isOn: false, own: 0, builtIn: 0, limit: Number.POSITIVE_INFINITY }
