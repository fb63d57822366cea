// How a session's Allure report is made. lab.report.build passes what differs between sessions through the environment.

// The quality gate of Allure 3.18 calls Iterator.prototype.toArray, which Node.js 20 does not have.
const iterator = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
iterator.toArray ??= function () {
  return [...this];
};

export default {
  name: "Elastic Lab",
  historyPath: process.env.ELASTIC_LAB_HISTORY,
  historyLimit: 50,
  plugins: {
    awesome: {
      options: {
        singleFile: process.env.ELASTIC_LAB_SINGLE_FILE === "true",
        groupBy: ["epic", "feature", "story"],
        reportLanguage: "en",
      },
    },
  },
  // The first that matches takes the test: a known behaviour stays one even where it fails.
  categories: [
    { name: "known KEDA behaviour", matchers: [{ labels: { tag: "^known$" } }, { labels: { known: ".+" } }], groupByMessage: false },
    { name: "objective breached", matchers: { statuses: ["failed"] } },
    { name: "lab fault", matchers: { statuses: ["broken"] } },
  ],
  // An experiment that did not run at all must not look like one that held.
  qualityGate: { rules: [{ minTestsCount: Number(process.env.ELASTIC_LAB_LEAST_TESTS ?? 1) }] },
};
