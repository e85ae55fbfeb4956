/** Return the first line that is not blank. */
export const firstLine = (text: string) => text.split("\n").find((line) => line.trim()) ?? "";
