// How a session's Allure report is made. lab/report/allure_report.py passes what differs between sessions through the environment.

export default {
  name: "Elastic Lab",
  historyPath: process.env.ELASTIC_LAB_HISTORY,
  historyLimit: 50,
  plugins: {
    awesome: {
      options: {
        singleFile: process.env.ELASTIC_LAB_SINGLE_FILE === "true",
        groupBy: ["epic", "feature"],
        reportLanguage: "en",
      },
    },
  },
  // What the page needs of a label is in it; a reader needs no more than the verdict.
  hideLabels: ["test"],
  // The first that matches takes the test. The label "verdict" is the session page's word for it, of lab/report/allure_test.py.
  categories: [
    { name: "breached", matchers: { labels: { verdict: "^breached$" } } },
    { name: "invalid trial", matchers: { labels: { verdict: "^invalid$" } } },
    { name: "no data", matchers: { labels: { verdict: "^no data$" } }, groupByMessage: false },
    { name: "not run", matchers: { labels: { verdict: "^not run$" } } },
    { name: "broken: a fault of the lab", matchers: { statuses: ["broken"] } },
    { name: "failed beside its claims", matchers: { statuses: ["failed"] } },
    { name: "known behaviour of another project", matchers: { labels: { known: ".+" } }, groupBy: [{ label: "known" }], groupByMessage: false },
  ],
};
