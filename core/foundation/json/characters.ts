/** The characters of JSON; their codes are equal in ASCII bytes and in the units of a string. */
export const QUOTE = 34;
export const PLUS = 43;
export const COMMA = 44;
export const MINUS = 45;
export const DOT = 46;
export const COLON = 58;
export const OPEN_BRACKET = 91;
export const BACKSLASH = 92;
export const CLOSE_BRACKET = 93;
export const LETTER_F = 102;
export const LETTER_N = 110;
export const LETTER_T = 116;
export const LETTER_U = 117;
export const OPEN_BRACE = 123;
export const CLOSE_BRACE = 125;
