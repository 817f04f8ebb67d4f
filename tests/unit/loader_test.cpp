// The plugin loader: what it takes, and every reason to refuse.
#include "loader/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/config.h"
#include "ocltensor/error.h"

namespace ocltensor {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string fake(const std::string& name) { return std::string(FAKES_DIR "/") + name + ".so"; }

struct Refusal {
  const char* file;
  const char* reason;
};

TEST(Loader, RefusesBrokenPluginsWithTheReason) {
  constexpr Refusal kRefusals[] = {
      {"fake_wrong_magic", "magic number"},
      {"fake_wrong_major", "ABI 99."},
      {"fake_no_descriptor", "does not export tb_plugin_descriptor"},
      {"fake_no_get_api", "does not export tb_plugin_get_api"},
      {"fake_get_api_fails", "no such ABI here"},
      {"fake_small_descriptor", "descriptor has 24 bytes, at least 40"},
      {"fake_small_api", "tb_api has 96 bytes, at least 104"},
      {"fake_small_table", "table 'device' has 32 bytes, at least 40"},
      {"fake_null_function", "function 0 of its table 'device' is missing"},
      {"fake_null_appended", "function 7 of its table 'stream' is missing"},
      {"not_a_library", "invalid ELF header"},
      {"not_there", "no such file"},
  };
  for (const Refusal& r : kRefusals) {
    const LoadedPlugin plugin = load_plugin_file(fake(r.file));
    EXPECT_FALSE(plugin) << r.file;
    EXPECT_THAT(plugin.refusal, HasSubstr(r.reason));
    EXPECT_THAT(plugin.refusal, HasSubstr(r.file));
  }
}

TEST(Loader, TakesAGoodPluginAndANewerOne) {
  for (const char* name : {"fake", "fake_larger"}) {
    const LoadedPlugin plugin = load_plugin_file(fake(name));
    ASSERT_TRUE(plugin) << plugin.refusal;
    EXPECT_STREQ(plugin.descriptor->device_type, name);
    int32_t devices = 0;
    EXPECT_EQ(plugin.api->device->count(&devices, nullptr), TB_OK);
    EXPECT_EQ(devices, 2);
  }
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ocltensor-loader-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    path_ = name;
    fs::copy_file(fake("fake"), file());
    fs::permissions(file(), fs::perms(0644));
    unsetenv("OCLTENSOR_PLUGIN_PATH");
    config::reset();
  }
  void TearDown() override {
    fs::permissions(path_, fs::perms(0755));
    fs::remove_all(path_);
    config::reset();
  }
  std::string file() const { return path_ + "/" + kPluginFile; }
  std::string path_;
};

TEST_F(Folder, RefusesRelativePathsAndTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(path_);
  EXPECT_THAT(load_plugin_file(kPluginFile).refusal, HasSubstr("not absolute"));
  EXPECT_THAT(load_plugin_file("").refusal, HasSubstr("not absolute"));
  EXPECT_FALSE(find_plugin("fake", FAKES_DIR));
  fs::current_path(before);
}

TEST_F(Folder, RefusesWhatEverybodyMayWrite) {
  fs::permissions(file(), fs::perms(0666));
  EXPECT_THAT(load_plugin_file(file()).refusal, HasSubstr("it is world-writable"));
  fs::permissions(file(), fs::perms(0644));
  fs::permissions(path_, fs::perms(0777));
  EXPECT_THAT(load_plugin_file(file()).refusal, HasSubstr("is world-writable"));
  fs::permissions(path_, fs::perms(01777));  // the sticky bit does not help the file's own folder
  EXPECT_THAT(load_plugin_file(file()).refusal, HasSubstr("is world-writable"));
  fs::permissions(path_, fs::perms(0755));
  EXPECT_TRUE(load_plugin_file(file()));
}

TEST_F(Folder, RefusesAFolderAboveThatEverybodyMayWrite) {
  fs::create_directory(path_ + "/inner");
  fs::copy_file(file(), path_ + "/inner/p.so");
  fs::permissions(path_, fs::perms(0777));
  EXPECT_THAT(load_plugin_file(path_ + "/inner/p.so").refusal, HasSubstr("is world-writable"));
}

TEST_F(Folder, FollowsLinksBeforeItJudges) {
  fs::create_directory(path_ + "/open");
  fs::copy_file(file(), path_ + "/open/p.so");
  fs::permissions(path_ + "/open", fs::perms(0777));
  fs::create_symlink(path_ + "/open/p.so", path_ + "/link.so");
  EXPECT_THAT(load_plugin_file(path_ + "/link.so").refusal, HasSubstr("is world-writable"));
}

TEST_F(Folder, PrefersThePluginOfItsVersion) {
  EXPECT_EQ(load_own_plugin(path_).path, fs::canonical(file()));
  const std::string folder = path_ + "/" + kPluginFolder;
  fs::create_directory(folder);
  EXPECT_EQ(load_own_plugin(path_).path, fs::canonical(file()));
  fs::copy_file(file(), folder + "/" + kPluginFile);
  EXPECT_EQ(load_own_plugin(path_).path, fs::canonical(folder + "/" + kPluginFile));
  fs::remove_all(folder);
  fs::remove(file());
  EXPECT_THAT(load_own_plugin(path_).refusal, HasSubstr(file() + "': there is no such file"));
}

std::string error_of_path(const std::string& list) {
  config::set(config::Knob::PluginPath, list);
  try {
    load_plugin_path();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), TB_E_UNAVAILABLE);
    return e.what();
  }
  return "no error";
}

TEST_F(Folder, SearchesThePathInOrderThenBesideTheHost) {
  EXPECT_TRUE(load_plugin_path().empty());
  EXPECT_EQ(find_plugin("fake", path_).path, fs::canonical(file()));
  // Every entry is loaded, in order; of two that serve a device, the first is found.
  fs::copy_file(fake("fake_larger"), path_ + "/libocltensor_plugin_larger.so");
  config::set(config::Knob::PluginPath, fake("fake_larger") + ":" + path_ + ":" + fake("fake"));
  const std::vector<LoadedPlugin> all = load_plugin_path();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].path, fs::canonical(fake("fake_larger")));
  EXPECT_EQ(all[1].path, fs::canonical(file()));
  EXPECT_STREQ(all[2].descriptor->device_type, "fake_larger");
  EXPECT_EQ(find_plugin("fake", FAKES_DIR).path, fs::canonical(file()));
  EXPECT_EQ(find_plugin("fake_larger", FAKES_DIR).path, fs::canonical(fake("fake_larger")));
  // A device that none of them serves is the host folder's business.
  config::set(config::Knob::PluginPath, fake("fake_larger"));
  EXPECT_EQ(find_plugin("fake", path_).path, fs::canonical(file()));
}

TEST_F(Folder, ABadEntryOfThePathIsAnErrorThatNamesIt) {
  const std::string good = ":" + fake("fake");
  for (const auto& [entry, reason] : std::initializer_list<std::pair<std::string, const char*>>{
           {"/nowhere/p.so", "'/nowhere/p.so': there is no such file"},
           {fake("not_a_library"), "invalid ELF header"},
           {fake("fake_no_descriptor"), "does not export tb_plugin_descriptor"},
           {fake("fake_wrong_magic"), "magic"}}) {
    EXPECT_THAT(error_of_path(entry + good), HasSubstr(reason));
    EXPECT_THAT(error_of_path(fake("fake") + ":" + entry), HasSubstr("OCLTENSOR_PLUGIN_PATH"));
    EXPECT_THROW(find_plugin("fake", path_), Error);
  }
  fs::create_directory(path_ + "/empty");
  EXPECT_THAT(error_of_path(path_ + "/empty" + good),
              HasSubstr("the folder holds no libocltensor_plugin*.so"));
  // Who only looks hears of all entries.
  config::set(config::Knob::PluginPath, path_ + "/empty:/nowhere/p.so" + good);
  const std::vector<LoadedPlugin> all = try_plugin_path();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_THAT(all[0].refusal, HasSubstr("the folder holds no"));
  EXPECT_THAT(all[1].refusal, HasSubstr("there is no such file"));
  EXPECT_STREQ(all[2].descriptor->device_type, "fake");
}

}  // namespace
}  // namespace ocltensor
