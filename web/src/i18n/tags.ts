/** Under the POSIX locale, Chromium says that its language is `en-US@posix`. `Intl` throws at that, and so would whatever
 * asks it with the browser's own words, libraries as they are loaded among them: so this comes before all others. */
const isTag = (name: string) => {
  try {
    return Intl.getCanonicalLocales(name).length > 0;
  } catch {
    return false;
  }
};

if (![navigator.language, ...navigator.languages].every(isTag)) {
  const known = navigator.languages.filter(isTag);
  const languages = known.length ? known : ["en-GB"];
  Object.defineProperty(navigator, "languages", { value: languages, configurable: true });
  Object.defineProperty(navigator, "language", { value: languages[0], configurable: true });
}
