/** A refusal of Zoho Books' fake: a code and a text. Codes 1002, 3062, 12003 to 12007 and 24016 are documented by Zoho. */
export class BooksRefusal extends Error {
  readonly code: number;
  readonly status: number;

  constructor(code: number, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}
