/** Replace invalid language tags of the browser. Under the POSIX locale, Chromium reports `en-US@posix`, and `Intl` throws.
 * Libraries call `Intl` while they load, so this module is imported first. */
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
